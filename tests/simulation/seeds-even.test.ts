import { describeSeeds } from './src/lane.ts';

describeSeeds(0, 2);
