/** The suite that every driver passes. Rules: SPEC.md, LOG. */
import { afterEach, beforeEach, describe } from 'vitest';
import { appendCases } from './append-cases.ts';
import { faultCases } from './fault-cases.ts';
import { groupCases } from './group-cases.ts';
import { growthCases } from './growth-cases.ts';
import type { Bench, LogHarness } from './harness.ts';
import { modelCases } from './model-cases.ts';
import { readCases } from './read-cases.ts';
import { retentionCases } from './retention-cases.ts';
import { viewCases } from './view-cases.ts';

/** `setup` is called before each test and gives a log of its own (or partitions that nobody else writes). */
export function describeLogConformance(name: string, setup: () => Promise<LogHarness>): void {
  describe(`log conformance: ${name}`, () => {
    let current: Bench | null = null;
    const bench = (): Bench => {
      if (current === null) throw new Error('no log outside of a test');
      return current;
    };
    beforeEach(async () => {
      const harness = await setup();
      current = { harness, log: await harness.open() };
    });
    afterEach(async () => {
      const harness = current?.harness;
      current = null;
      await harness?.dispose();
    });
    describe('append', () => {
      appendCases(bench);
    });
    describe('read', () => {
      readCases(bench);
    });
    describe('retention', () => {
      retentionCases(bench);
    });
    describe('views', () => {
      viewCases(bench);
    });
    describe('groups', () => {
      groupCases(bench);
    });
    describe('growth', () => {
      growthCases(bench);
    });
    describe('faults', () => {
      faultCases(bench);
    });
    describe('model', () => {
      modelCases(bench);
    });
  });
}
