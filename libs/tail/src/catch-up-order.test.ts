import { describe, expect, it } from 'vitest';
import { CatchUpOrder } from './catch-up-order.ts';

interface Waiter {
  readonly name: string;
  readonly position: number;
}

function orderOf(...positions: readonly number[]): CatchUpOrder<Waiter> {
  const order = new CatchUpOrder<Waiter>();
  for (const position of positions) order.add({ name: `at ${position}`, position });
  return order;
}
const names = (served: readonly Waiter[]): string[] => served.map(({ name }) => name);

describe('order of catch-up reads', () => {
  it('[TAIL-ROUNDS] a round goes up the log, whatever the order in which its readers came', () => {
    const order = orderOf(70, 10, 40);
    const visited: unknown[] = [];
    for (let from = order.next(); from !== null; from = order.next())
      visited.push([from, names(order.take(from, from + 5))]);
    expect(visited).toEqual([
      [10, ['at 10']],
      [40, ['at 40']],
      [70, ['at 70']],
    ]);
    expect(order.isEmpty()).toBe(true);
  });

  it('[TAIL-ROUNDS] everyone within what was read is served by it, the end not included', () => {
    const order = orderOf(10, 14, 15, 9, 10);
    expect(order.next()).toBe(9);
    expect(names(order.take(9, 15))).toEqual(['at 9', 'at 10', 'at 10', 'at 14']);
    expect(order.next()).toBe(15);
  });

  it('[TAIL-ROUNDS] a read that brought nothing serves whoever waits at its place', () => {
    const order = orderOf(10, 10, 11);
    expect(order.next()).toBe(10);
    expect(names(order.take(10, 10))).toEqual(['at 10', 'at 10']);
    expect(order.next()).toBe(11);
  });

  it('[TAIL-ROUNDS] who comes during a round waits for the next, so that nobody in it is passed over', () => {
    const order = orderOf(10, 1000);
    expect(order.next()).toBe(10);
    order.take(10, 20);
    // It goes on behind its chunk, for ever if it may.
    order.add({ name: 'again at 20', position: 20 });
    order.add({ name: 'new at 5', position: 5 });
    expect(order.next()).toBe(1000);
    order.take(1000, 1010);
    expect(order.next()).toBe(5);
    order.take(5, 15);
    expect(order.next()).toBe(20);
  });

  it('[TAIL-ROUNDS] who waits less than a read below the next place of the round is taken along', () => {
    const order = orderOf(10, 28);
    order.next();
    order.take(10, 20);
    order.add({ name: 'again at 20', position: 20 });
    order.add({ name: 'too far', position: 18 });
    order.add({ name: 'beyond', position: 29 });
    expect(order.next()).toBe(20);
    expect(names(order.take(20, 30))).toEqual(['at 28', 'again at 20', 'beyond']);
    expect(order.next()).toBe(18);
  });

  it('[TAIL-ROUNDS] who gives up is not served, in this round or the next', () => {
    const order = new CatchUpOrder<Waiter>();
    const [first, second, third] = [10, 20, 30].map((position) => ({ name: `at ${position}`, position }));
    if (first === undefined || second === undefined || third === undefined) throw new Error('three were made');
    order.add(first);
    order.add(second);
    expect(order.next()).toBe(10);
    order.add(third);
    order.remove(second);
    order.remove(third);
    expect(order.isEmpty()).toBe(false);
    expect(order.take(10, 100)).toEqual([first]);
    expect([order.isEmpty(), order.next()]).toEqual([true, null]);
  });

  it('[TAIL-ROUNDS] all can be taken at once', () => {
    const order = orderOf(10, 20);
    order.next();
    order.add({ name: 'new', position: 5 });
    expect(names(order.takeAll())).toEqual(['at 10', 'at 20', 'new']);
    expect([order.isEmpty(), order.next()]).toEqual([true, null]);
  });
});
