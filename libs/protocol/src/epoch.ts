/** The name of one unbroken history of `inbound` and `events`. Ten characters of base32, 50 random bits. */
export type Epoch = string;

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
export const EPOCH_LENGTH = 10;
const EPOCH = /^[a-z2-7]{10}$/;

export function isEpoch(text: string): text is Epoch {
  return EPOCH.test(text);
}

/** @param random at least {@link EPOCH_LENGTH} random bytes. */
export function makeEpoch(random: Uint8Array): Epoch {
  if (random.length < EPOCH_LENGTH) throw new TypeError(`makeEpoch needs ${EPOCH_LENGTH} random bytes`);
  let text = '';
  for (let index = 0; index < EPOCH_LENGTH; index++) text += ALPHABET[(random[index] ?? 0) & 31] ?? '';
  return text;
}
