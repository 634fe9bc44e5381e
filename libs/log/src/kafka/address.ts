/** Where a broker listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
}
