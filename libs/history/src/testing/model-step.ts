/** A step of a run that is done to a reference model and to what is tested; possible at any time unless it says otherwise. */
import type fc from 'fast-check';

export abstract class ModelStep<Model extends object, Real> implements fc.Command<Model, Real> {
  check(_model: Readonly<Model>): boolean {
    return true;
  }
  abstract run(model: Model, real: Real): void;
  abstract toString(): string;
}
