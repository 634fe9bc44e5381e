/** Loaded before a process whose memory is measured: on SIGUSR2 it collects its garbage, so that what is left is held. */
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

process.on('SIGUSR2', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: object) => void;
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
});
