/** The file store: what needs Node. */
export {};
