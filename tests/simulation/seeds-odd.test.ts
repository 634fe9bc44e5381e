import { describeSeeds } from './src/lane.ts';

describeSeeds(1, 2);
