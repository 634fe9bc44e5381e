/** Times of the faulty server, in milliseconds. */

/** Chunks that are written so far apart arrive apart. */
export const APART_MS = 30;
/** After so long a client has read what was sent to it, on a busy machine as well. */
export const READ_MS = 150;
