/** A resumable transport for the official MCP clients. */
export {};
