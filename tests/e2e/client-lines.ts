/** The two lines of the official client that are in use. */
export type ClientLine = 'v1' | 'v2';
export const CLIENT_LINES: readonly ClientLine[] = ['v1', 'v2'];
