/** What was started, in order, so that it can be stopped in the other order, whatever failed on the way. */
export interface StopOptions {
  /** True: let what runs finish. False: end at once. */
  readonly drain: boolean;
}

export class StopStack {
  private readonly stops: ((options: StopOptions) => Promise<void>)[] = [];

  push(stop: (options: StopOptions) => Promise<void>): void {
    this.stops.push(stop);
  }

  /** Stops everything, last first; goes on after a failure and rejects with the first one at the end. Idempotent. */
  async stop(options: StopOptions): Promise<void> {
    const failures: unknown[] = [];
    for (let next = this.stops.pop(); next !== undefined; next = this.stops.pop()) {
      try {
        await next(options);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
