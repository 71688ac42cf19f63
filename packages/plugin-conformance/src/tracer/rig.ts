import type * as OpenTelemetryApi from '@opentelemetry/api';

/** What the author of a tracer gives to the conformance suite. */
export interface TracerRig<Settings = Record<string, unknown>> {
  /** The copy of `@opentelemetry/api` that the plugin uses: `import * as api from '@opentelemetry/api'`. */
  readonly api: typeof OpenTelemetryApi;
  /** Starts a back end that receives spans, with the settings to send there and to sample everything. */
  open(): Promise<Receiver<Settings>>;
  /** The settings with another sample rate. Omit it if the plugin cannot sample. */
  sampled?(settings: Settings, rate: 0 | 1): Settings;
  /** Why a trace is sent that its sender does not sample, if the vendor requires that. */
  readonly ignoresASendersNo?: string;
  /** Settings of a back end where nothing listens. */
  readonly away?: Settings;
  /** Settings that `start` must reject, and the secrets in them. */
  readonly wrong?: { readonly settings: Settings; readonly secrets?: readonly string[] };
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** A back end for one rule. */
export interface Receiver<Settings = Record<string, unknown>> {
  readonly settings: Settings;
  /** All spans that have arrived so far. */
  spans(): readonly ReceivedSpan[] | Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

export interface ReceivedSpan {
  readonly name: string;
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** As the back end stores them. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** What the back end received about the process; without what the protocol does not carry. */
  readonly service?: { readonly name?: string; readonly version?: string; readonly environment?: string };
}
