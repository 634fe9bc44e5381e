/** A server that lies, and a check that shows what a client makes of it. For tests; Node only. */
export { runClientCheck } from './client-check.ts';
export type {
  CheckedRun,
  CheckReports,
  ClientCheckOptions,
  ClientCheckReport,
  ConnectClient,
  ClientUnderTest,
} from './client-check.ts';
export { DIALECTS, FAULT_NAMES, FAULT_TABLE, rightVerdicts } from './fault-table.ts';
export type { Dialect, FaultClass, FaultName, FaultPlace, FaultRow, Verdict } from './fault-table.ts';
export { startFaultyServer } from './faulty-server.ts';
export type { FaultyServer, FaultyServerOptions } from './faulty-server.ts';
export { formatClientCheck } from './format-client-check.ts';
export type { FaultMoment, LoggedRequest, SentEvent } from './world.ts';
