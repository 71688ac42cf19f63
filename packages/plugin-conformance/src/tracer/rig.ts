/** What the author of a tracer gives to the conformance suite. */
export interface TracerRig<Settings = Record<string, unknown>> {
  /** The copy of `@opentelemetry/api` that the plugin uses: `import * as api from '@opentelemetry/api'`. */
  readonly api: OpenTelemetryApi;
  /** Starts a back end that receives, and gives the settings that lead there, with everything sampled. */
  open(): Promise<Receiver<Settings>>;
  /** The settings with another share of sampled traces. Left out when the plugin cannot sample. */
  sampled?(settings: Settings, rate: 0 | 1): Settings;
  /** Why a trace that its sender does not sample is sent all the same, where the vendor wants it so. Left out when it is not. */
  readonly ignoresASendersNo?: string;
  /** Settings of a back end where nothing listens. */
  readonly away?: Settings;
  /** Settings that `start` must refuse, and the secrets in them. */
  readonly wrong?: { readonly settings: Settings; readonly secrets?: readonly string[] };
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** A back end of one's own. */
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
  /** Where a back end keeps attributes of spans. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** What the back end was told about the process; left out what the protocol does not carry. */
  readonly service?: { readonly name?: string; readonly version?: string; readonly environment?: string };
}

/** The part of `@opentelemetry/api` that the suite uses. This package does not depend on it; the module itself fits. */
export interface OpenTelemetryApi {
  readonly ROOT_CONTEXT: ApiContext;
  readonly trace: {
    getTracer(name: string): ApiTracer;
    setSpanContext(context: ApiContext, span: ApiSpanContext): ApiContext;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the module's own type of a provider is narrower than we can say here
    setGlobalTracerProvider(provider: any): boolean;
    disable(): void;
  };
  readonly context: { active(): ApiContext };
}

/** Opaque to the suite. */
export interface ApiContext {
  getValue(key: symbol): unknown;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  setValue(key: symbol, value: unknown): any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  deleteValue(key: symbol): any;
}

export interface ApiSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

export interface ApiTracer {
  startSpan(name: string, options?: { attributes?: Record<string, string | number | boolean> }, context?: ApiContext): ApiSpan;
  startActiveSpan<Result>(name: string, work: (span: ApiSpan) => Result): Result;
}

export interface ApiSpan {
  spanContext(): ApiSpanContext;
  isRecording(): boolean;
  end(): void;
}
