import { describe, expect, it } from 'vitest';
import { RunningPlaces } from './running-places.ts';
import type { PlaceSeeker } from './running-places.ts';

/** A session with so many requests, which notes each that it starts. */
function session(
  name: string,
  requests: number,
  started: string[],
  principal = 'p',
): { readonly who: PlaceSeeker; readonly take: () => boolean } {
  let left = requests;
  const take = (): boolean => {
    if (left === 0) return false;
    left--;
    started.push(name);
    return true;
  };
  return { who: { principal }, take };
}

describe('running places', () => {
  it('[WRK-PLACES] are given in turn, and no more of them than there are', () => {
    const started: string[] = [];
    const places = new RunningPlaces(2);
    const [a, b, c] = [session('a', 3, started), session('b', 2, started), session('c', 1, started)];
    for (const { who, take } of [a, b, c]) places.wait(who, take);
    expect([started.join(''), places.taken()]).toEqual(['aa', 2]);
    for (let ended = 0; ended < 4; ended++) places.free(a.who);
    expect(started.join('')).toBe('aaabcb');
    for (let ended = 0; ended < 2; ended++) places.free(a.who);
    expect(places.taken()).toBe(0);
  });

  it('[WRK-PLACES] are not taken by those who left, and several may be given back at once', () => {
    const started: string[] = [];
    const places = new RunningPlaces(2);
    const [a, b, c] = [session('a', 2, started), session('b', 9, started), session('c', 2, started)];
    for (const { who, take } of [a, b, c]) places.wait(who, take);
    places.leave(b.who);
    places.free(a.who, 2);
    expect([started.join(''), places.taken()]).toEqual(['aacc', 2]);
  });

  it('[WRK-PLACES] a request that is settled while it takes its place gives it to the next', () => {
    const started: string[] = [];
    const places = new RunningPlaces(1);
    let left = 3;
    const who = { principal: 'p' };
    places.wait(who, () => {
      if (left-- === 0) return false;
      started.push('x');
      places.free(who);
      return true;
    });
    expect([started.length, places.taken()]).toEqual([3, 0]);
  });

  it('[WRK-PLACES-PRINCIPAL] a principal has its share at most, however many sessions it has; the rest is for the others', () => {
    const started: string[] = [];
    const places = new RunningPlaces(4, 3);
    const greedy = [1, 2, 3, 4, 5].map((number) => session(`g${number}`, 2, started, 'greedy'));
    for (const { who, take } of greedy) places.wait(who, take);
    expect([started.join(), places.taken()]).toEqual(['g1,g1,g2', 3]);
    const other = session('o', 1, started, 'other');
    places.wait(other.who, other.take);
    expect(started.at(-1)).toBe('o');
    places.free(other.who);
    expect(places.taken()).toBe(3);
    places.free(greedy[0]!.who);
    expect([started.at(-1), places.taken()]).toEqual(['g2', 3]);
  });

  it('[WRK-PLACES-PRINCIPAL] principals that wait have turns, one request each, whatever the number of their sessions', () => {
    const started: string[] = [];
    const places = new RunningPlaces(1);
    const many = Array.from({ length: 5 }, () => session('m', 2, started, 'many'));
    const one = session('o', 3, started, 'one');
    for (const { who, take } of [...many, one]) places.wait(who, take);
    for (let ended = 0; ended < 6; ended++) places.free(started.at(-1) === 'o' ? one.who : many[0]!.who);
    expect(started.join('')).toBe('momomom');
  });
});
