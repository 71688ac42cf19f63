/** The connection of a source record of kind `sqs`; `connection.json` describes each field to its user. */
export interface Connection {
  readonly access_key_id: string;
  readonly secret_key: string;
  readonly default_region: string;
  readonly queue_name: string;
  /** URL of a compatible server. */
  readonly endpoint?: string;
}
