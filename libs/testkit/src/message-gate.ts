/** Counts messages that are framed by their length, over all connections of a link, and lets no more than a number of them through. */

export interface MessageGate {
  /** Counts from here on; after `messages` nothing passes. `null`: everything does. */
  stopAfter(messages: number | null): void;
  /** That passed since {@link stopAfter} was called. */
  passed(): number;
  /** Whether the number is reached. */
  isShut(): boolean;
  /** For one direction of one connection: what of a chunk passes, up to the end of the last message that may. */
  way(): (chunk: Buffer) => Buffer;
}

/** Four bytes, big-endian, as in Kafka's protocol. */
const LENGTH_BYTES = 4;

export function createMessageGate(): MessageGate {
  let limit: number | null = null;
  let passed = 0;
  const isShut = (): boolean => limit !== null && passed >= limit;
  return {
    stopAfter(messages) {
      limit = messages;
      passed = 0;
    },
    passed: () => passed,
    isShut,
    way() {
      const length = Buffer.alloc(LENGTH_BYTES);
      let lengthRead = 0;
      let bodyLeft = 0;
      return (chunk) => {
        let at = 0;
        while (at < chunk.length) {
          if (isShut()) return chunk.subarray(0, at);
          if (lengthRead < LENGTH_BYTES) {
            length[lengthRead++] = chunk[at++] ?? 0;
            if (lengthRead < LENGTH_BYTES) continue;
            bodyLeft = length.readUInt32BE(0);
          } else {
            const taken = Math.min(bodyLeft, chunk.length - at);
            at += taken;
            bodyLeft -= taken;
          }
          if (bodyLeft > 0) continue;
          lengthRead = 0;
          passed++;
        }
        return chunk;
      };
    },
  };
}
