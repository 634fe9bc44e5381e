/**
 * SASL OAUTHBEARER for kafkajs, whose own takes a refusal for success: brokers answer a token that they do not accept
 * without an error code, and say why; only what is sent next fails, with a connection that closes (RFC 7628, 3.2.2).
 */
import { errorText } from '../errors.ts';
import { KafkaFailure } from './kafka-failure.ts';

interface SaslStep {
  readonly request: { encode(): Promise<Buffer> };
  readonly response: { decode(bytes: Buffer): Promise<Buffer>; parse(bytes: Buffer): Promise<Buffer> };
}

/** As kafkajs calls it for every connection, and again when the broker wants to see a token anew. */
export type AuthenticationProvider = (args: { saslAuthenticate(step: SaslStep): Promise<Buffer> }) => {
  authenticate(): Promise<void>;
};

const LONGEST_REASON = 300;

/** The broker's last word before it refuses. */
const GIVING_UP = '\u0001';

export function oauthBearer(token: () => Promise<string>): AuthenticationProvider {
  return ({ saslAuthenticate }) => ({
    async authenticate() {
      const value = await token().catch((error: unknown) => {
        const reason = errorText(error);
        // Not a refusal: who issues tokens may be away for a while.
        throw new KafkaFailure('connection', `no token for OAUTHBEARER could be had: ${reason}`, { cause: error });
      });
      const refusal = await saslAuthenticate(say(`n,,\u0001auth=Bearer ${value}\u0001\u0001`));
      if (refusal.length === 0) return;
      // The broker closes after this, with or without an answer.
      await saslAuthenticate(say(GIVING_UP)).catch(() => undefined);
      throw new Error(`the broker does not accept the token: ${readReason(refusal)}`);
    },
  });
}

function say(text: string): SaslStep {
  return {
    request: { encode: () => Promise.resolve(withLength(Buffer.from(text))) },
    response: {
      // kafkajs puts the length before what the broker sent.
      decode: (bytes) => Promise.resolve(bytes.subarray(4)),
      parse: (bytes) => Promise.resolve(bytes),
    },
  };
}

function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Such as `{"status":"invalid_token"}`: never the token itself. */
function readReason(refusal: Buffer): string {
  return refusal
    .toString('utf8')
    .replaceAll(/[^\x20-\x7e]/g, ' ')
    .slice(0, LONGEST_REASON);
}
