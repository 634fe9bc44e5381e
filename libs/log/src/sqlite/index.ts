export { openSqliteLog, openSqliteLogWithControls } from './sqlite-log.ts';
export type { SqliteControls, SqliteLogOptions } from './sqlite-log.ts';
export type { InjectedFault } from './messages.ts';
