import { requestStream, STANDALONE } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { eventAt, sent, sessionEnded, started, streamEnded } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { RequestLedger } from './requests.ts';

const r = requestStream;

function ledgerOf(...inputs: readonly RecordInput[]): RequestLedger {
  const ledger = new RequestLedger(null);
  inputs.forEach((input, offset) => {
    ledger.fold(eventAt(input, offset));
  });
  return ledger;
}

describe('request ledger', () => {
  it('[REQ-FOLD] a request that no record speaks of is unknown', () => {
    expect(ledgerOf().get(5)).toBeUndefined();
    expect(ledgerOf(sent('k', STANDALONE, '{}'), sessionEnded('k')).get(0)).toBeUndefined();
  });

  it('[REQ-FOLD] starts count by their attempt, the highest', () => {
    const ledger = ledgerOf(started('k', r(5), 2), started('k', r(5), 1));
    expect(ledger.get(5)).toEqual({ attempt: 2, sent: false, ended: false });
  });

  it('[REQ-FOLD] a message without the end mark leaves the request open and counts as sent', () => {
    expect(ledgerOf(sent('k', r(5), '{}')).get(5)).toEqual({ attempt: 0, sent: true, ended: false });
  });

  it('[REQ-FOLD] a question of any of several requests counts as sent by each of them, wherever it stands', () => {
    const elsewhere = ledgerOf(sent('k', STANDALONE, '{}', { among: [5, 6] }));
    expect([4, 5, 6].map((at) => elsewhere.get(at)?.sent)).toEqual([undefined, true, true]);
    const onOne = ledgerOf(started('k', r(6), 1), sent('k', r(5), '{}', { among: [5, 6] }));
    expect([5, 6].map((at) => onOne.get(at))).toEqual([
      { attempt: 0, sent: true, ended: false },
      { attempt: 1, sent: true, ended: false },
    ]);
  });

  it('[REQ-FOLD] a question of which nobody can read whose it may be counts as sent by all that had begun, and by none that begins later', () => {
    const ledger = ledgerOf(started('k', r(5), 1), sent('k', STANDALONE, '{}', { among: 'x' }), started('k', r(6), 1));
    expect([4, 5, 6].map((at) => ledger.get(at)?.sent)).toEqual([undefined, true, false]);
  });

  it('[REQ-FOLD] the end mark, or the end of the stream without a message, ends the request', () => {
    expect(ledgerOf(sent('k', r(5), '{}', { end: true })).get(5)?.ended).toBe(true);
    expect(ledgerOf(streamEnded('k', r(5))).get(5)?.ended).toBe(true);
  });

  it('[REQ-FOLD] what a producer says on the standalone stream ends its record, and is nothing that a call sent', () => {
    const ledger = ledgerOf(sent('k', 's', '{"method":"notifications/message"}', { answers: 9 }));
    expect(ledger.get(9)).toEqual({ attempt: 0, sent: false, ended: true });
    expect(ledgerOf(sent('k', 's', '{}')).get(9)).toBeUndefined();
  });

  it('[REQ-BATCH] a response to a member of a batch ends that member only', () => {
    const ledger = ledgerOf(
      sent('k', r(5), '{}', { answers: 6 }),
      sent('k', r(5), '{}', { answers: 5 }),
      sent('k', r(5), '{}', { answers: 7, end: true }),
    );
    expect([5, 6, 7, 8].map((at) => ledger.get(at)?.ended)).toEqual([true, true, true, undefined]);
    const half = ledgerOf(sent('k', r(5), '{}', { answers: 6 }));
    expect([5, 6, 7].map((at) => half.get(at)?.ended ?? false)).toEqual([false, true, false]);
  });

  it('[REQ-BATCH] what was sent on the stream of a batch counts as sent by every member that has no answer', () => {
    const ledger = ledgerOf(started('k', r(6), 1), sent('k', r(5), '{"method":"notifications/progress"}'));
    expect(ledger.get(5, 5)).toEqual({ attempt: 0, sent: true, ended: false });
    expect(ledger.get(6, 5)).toEqual({ attempt: 1, sent: true, ended: false });
    expect(ledger.get(7, 5)).toEqual({ attempt: 0, sent: true, ended: false });
  });

  it('[REQ-BATCH] the answer to one member does not count as sent by the others', () => {
    const ledger = ledgerOf(started('k', r(6), 1), sent('k', r(5), '{}', { answers: 5 }));
    expect(ledger.get(6, 5)).toEqual({ attempt: 1, sent: false, ended: false });
  });

  it('[REQ-CHECKPOINT] a fold from a checkpoint begins with its open requests', () => {
    const ledger = new RequestLedger({
      claims: [1],
      inbound: 10,
      from: 3,
      open: [
        { at: 3, attempt: 1, sent: true },
        { at: 9, attempt: 0, sent: false },
      ],
    });
    ledger.fold(eventAt(started('k', r(9), 1), 20));
    expect(ledger.get(3)).toEqual({ attempt: 1, sent: true, ended: false });
    expect(ledger.get(9)).toEqual({ attempt: 1, sent: false, ended: false });
    expect(ledger.get(4)).toBeUndefined();
  });

  it('[REQ-FORGET] what is forgotten is gone, one by one and below a place', () => {
    const ledger = ledgerOf(started('k', r(1), 1), started('k', r(2), 1), started('k', r(3), 1));
    ledger.forget(3);
    ledger.forgetBelow(2);
    expect([1, 2, 3].map((at) => ledger.get(at)?.attempt)).toEqual([undefined, 1, undefined]);
  });
});
