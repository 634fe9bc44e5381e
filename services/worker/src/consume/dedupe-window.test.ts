import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { DedupeWindow } from './dedupe-window.ts';

describe('the window of repetitions', () => {
  it('[WRK-DEDUPE] reaches back a minute, and hardly further', async () => {
    const time = createVirtualTime({ seed: 1 });
    const window = new DedupeWindow(time.clock());
    expect(window.from()).toBe(Infinity);
    window.took(10);
    await time.advance(999);
    window.took(11);
    await time.advance(30_000);
    window.took(12);
    // 11 came 60 s ago, and is known by the sample of 10.
    await time.advance(30_000);
    expect(window.from()).toBe(10);
    await time.advance(1002);
    expect(window.from()).toBe(12);
    await time.advance(60_000);
    expect(window.from()).toBe(Infinity);
  });

  it('[WRK-DEDUPE] counts from when a request came, not from when a successor read it', async () => {
    const time = createVirtualTime({ seed: 1 });
    await time.advance(100_000);
    const window = new DedupeWindow(time.clock());
    window.took(1, 90_000);
    window.took(2, 50_000);
    window.took(3, -5);
    expect(window.from()).toBe(2);
    await time.advance(12_000);
    expect(window.from()).toBe(3);
  });
});
