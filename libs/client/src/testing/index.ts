/** A server that lies, for tests of clients. */
export {};
