import { describe, expect, it } from 'vitest';
import { RunningPlaces } from './running-places.ts';

/** A session with so many requests, which notes each that it starts. */
function session(
  name: string,
  requests: number,
  started: string[],
): { readonly who: object; readonly take: () => boolean } {
  let left = requests;
  const take = (): boolean => {
    if (left === 0) return false;
    left--;
    started.push(name);
    return true;
  };
  return { who: {}, take };
}

describe('running places', () => {
  it('[WRK-PLACES] are given in turn, and no more of them than there are', () => {
    const started: string[] = [];
    const places = new RunningPlaces(2);
    const [a, b, c] = [session('a', 3, started), session('b', 2, started), session('c', 1, started)];
    for (const { who, take } of [a, b, c]) places.wait(who, take);
    expect([started.join(''), places.taken()]).toEqual(['aa', 2]);
    for (let ended = 0; ended < 4; ended++) places.free();
    expect(started.join('')).toBe('aaabcb');
    for (let ended = 0; ended < 2; ended++) places.free();
    expect(places.taken()).toBe(0);
  });

  it('[WRK-PLACES] are not taken by those who left, and several may be given back at once', () => {
    const started: string[] = [];
    const places = new RunningPlaces(2);
    const [a, b, c] = [session('a', 2, started), session('b', 9, started), session('c', 2, started)];
    for (const { who, take } of [a, b, c]) places.wait(who, take);
    places.leave(b.who);
    places.free(2);
    expect([started.join(''), places.taken()]).toEqual(['aacc', 2]);
  });

  it('[WRK-PLACES] a request that is settled while it takes its place gives it to the next', () => {
    const started: string[] = [];
    const places = new RunningPlaces(1);
    let left = 3;
    places.wait({}, () => {
      if (left-- === 0) return false;
      started.push('x');
      places.free();
      return true;
    });
    expect([started.length, places.taken()]).toEqual([3, 0]);
  });
});
