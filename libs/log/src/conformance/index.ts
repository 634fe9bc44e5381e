export { describeLogConformance } from './describe-log.ts';
export { eventually } from './eventually.ts';
export type { InjectedAppendFault, LogHarness } from './harness.ts';
