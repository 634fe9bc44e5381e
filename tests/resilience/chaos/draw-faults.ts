/** Which faults come next: every one of them before any comes again, one in four together with another one. */
import type { SeededRandom } from '@throughline/testkit';
import type { Fault } from '../faults/fault.ts';

const TWO_IN = 4;

export function* drawFaults(faults: readonly Fault[], random: SeededRandom): Generator<readonly Fault[], never> {
  for (let left: Fault[] = []; ;) {
    if (left.length === 0) left = [...faults];
    const [first] = left.splice(random.below(left.length), 1) as [Fault];
    const others = faults.filter((fault) => fault !== first && fault.isCombinable === true);
    const isTwo = first.isCombinable === true && others.length > 0 && random.below(TWO_IN) === 0;
    yield isTwo ? [first, others[random.below(others.length)]!] : [first];
  }
}
