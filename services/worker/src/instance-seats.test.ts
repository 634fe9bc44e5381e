import { describe, expect, it } from 'vitest';
import { InstanceSeats } from './instance-seats.ts';

describe('instance seats', () => {
  it('[WRK-SEATS] are bounded for each server and for each principal over all servers', () => {
    const seats = new InstanceSeats({ server: (name) => (name === 'small' ? 1 : 9), principal: 2 });
    expect(seats.take('small', 'p')).toBe(true);
    expect([seats.isFull('small'), seats.isFull('large')]).toEqual([true, false]);
    expect(seats.take('small', 'q')).toBe(false);
    expect([seats.take('large', 'p'), seats.take('large', 'p'), seats.take('large', 'q')]).toEqual([true, false, true]);
    expect(seats.count()).toBe(3);
    seats.free('small', 'p');
    expect([seats.take('large', 'p'), seats.take('small', 'q'), seats.count()]).toEqual([true, true, 4]);
  });
});
