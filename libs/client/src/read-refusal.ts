/** Why Throughline refuses a resume, in its own words. SPEC: CLIENT-REFUSED. */
import { RESUMPTION_REASONS } from '@throughline/protocol';
import type { ResumptionReason } from '@throughline/protocol';
import { reject } from './verdict.ts';
import type { Rejected } from './verdict.ts';

/** @param text a JSON-RPC response, in-band or as the body of an HTTP answer; anything else is no refusal. */
export function readRefusal(text: string): Rejected | null {
  let message: { readonly error?: { readonly message?: unknown; readonly data?: Data } } | null;
  try {
    message = JSON.parse(text) as typeof message;
  } catch {
    return null;
  }
  const reason = message?.error?.data?.reason;
  if (message?.error?.data?.type !== 'ResumptionRejected' || !isReason(reason)) return null;
  return reject(reason, String(message.error.message));
}

interface Data {
  readonly type?: unknown;
  readonly reason?: unknown;
}

function isReason(reason: unknown): reason is ResumptionReason {
  return typeof reason === 'string' && Object.hasOwn(RESUMPTION_REASONS, reason);
}
