/** The field `registry` of a codec that reads schemas from a registry. */
export interface RegistrySettings {
  /**
   * Such as `https://registry.example.com`: the base of the Confluent API, of the API of Apicurio
   * (`…/apis/registry/v2`), or of AWS Glue.
   */
  readonly url: string;
  /** How messages name their schemas. */
  readonly framing: 'confluent' | 'apicurio' | 'glue';
  readonly username?: string;
  readonly password?: string;
  /** A bearer token, instead of a user name. */
  readonly token?: string;
  /** Certificates in PEM that sign the one of the registry. */
  readonly ca?: string;
  /** For mutual TLS, in PEM. */
  readonly client_cert?: string;
  readonly client_key?: string;
  /** For AWS Glue, whose access key is `username` and `password`. */
  readonly region?: string;
}
