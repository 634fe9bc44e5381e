/** What `connect` has of the process that it runs in. */
import type { Writable } from 'node:stream';

export interface ConnectProcess {
  readonly input: AsyncIterable<Uint8Array>;
  readonly output: Writable;
  err(text: string): void;
  onSignals(onSignal: (signal: NodeJS.Signals) => void): () => void;
  exit(code: number): void;
  /** Somebody types on stdin. */
  readonly isInteractive: boolean;
}
