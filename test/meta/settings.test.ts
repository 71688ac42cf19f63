import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { envOf, settings, type SettingsTable } from '#core/config/settings';
import { files, read } from './house.js';

const meta = suite('meta/settings');
const rows: SettingsTable = settings;

/**
 * The test in which a second value of each setting changes the behaviour, not only the printed
 * configuration.
 */
const TESTED: Record<string, readonly string[]> = {
  'test/agent/shards.test.ts': ['agent.shards'],
  'test/e2e/client-url.test.ts': ['client.url', 'client.key'],
  'test/agent/agent.test.ts': [
    'instance_ingest_rate',
    'encryption_key',
    'agent.mode',
    'agent.drain_timeout_seconds',
  ],
  'test/ingest/commit/event-writer.test.ts': ['ingest.inline_routing', 'limits.events_per_second'],
  'test/agent/delivery/claimer.test.ts': ['delivery.max_outstanding_bytes'],
  'test/agent/delivery/scheduler.test.ts': [
    'consumer_pool_size',
    'max_response_size',
    'delivery.endpoint_concurrency',
    'delivery.lookups_per_project',
    'delivery.max_outstanding',
  ],
  'test/ingest/transform/overruns.test.ts': ['transform.pause_window_seconds'],
  'test/agent/sources/pause-sources.test.ts': [
    'transform.pause_overruns',
    'transform.pause_seconds',
  ],
  'test/agent/sources/source-runner.test.ts': ['ingest.window'],
  'test/agent/liveness/maintenance.test.ts': [
    'retention.enabled',
    'retention.days',
    'archive.url',
    'archive.give_up_before',
    'archive.max_delay_days',
  ],
  'test/agent/notifications/mailer.test.ts': [
    'smtp.provider',
    'smtp.url',
    'smtp.port',
    'smtp.ssl',
    'smtp.username',
    'smtp.password',
    'smtp.from',
    'smtp.reply_to',
    'smtp.starttls',
    'smtp.ca_file',
    'smtp.insecure_skip_verify',
  ],
  'test/agent/notifications/notifier.test.ts': [
    'notifications.endpoint_failures',
    'notifications.source_seconds',
    'notifications.quiet_seconds',
  ],
  'test/agent/proxy.test.ts': ['delivery.proxy', 'delivery.no_proxy', 'delivery.ca_file'],
  'test/core/process/loop-shares.test.ts': ['limits.event_loop_ms'],
  'test/agent/destinations/http/sender.test.ts': ['limits.response_bytes_per_second'],
  'test/agent/routing/pending-queues.test.ts': ['limits.routing_work'],
  'test/agent/settings.test.ts': [
    'circuit_breaker.failure_threshold',
    'circuit_breaker.minimum_request_count',
    'circuit_breaker.observability_window',
    'circuit_breaker.error_timeout',
    'circuit_breaker.max_error_timeout',
    'limits.failure_threshold',
    'limits.minimum_request_count',
    'ingest.batch_size',
    'ingest.idempotency_window_seconds',
    'transform.deadline_ms',
    'transform.memory_mb',
    'transform.max_output_bytes',
    'transform.processes',
  ],
  'test/cli/commands/plugins/strict.test.ts': ['plugins.dir', 'plugins.strict'],
  'test/core/config/config.test.ts': ['feature_flag'],
  'test/e2e/agent-flags.test.ts': [
    'agent.interval_seconds',
    'delivery.allowed_networks',
    'server.http.agent_port',
  ],
  'test/e2e/global-flags.test.ts': [
    'database.type',
    'database.scheme',
    'database.password',
    'kv.type',
    'kv.database',
  ],
  'test/e2e/licence.test.ts': [
    'license_key',
    'license_public_key',
    'enable_feature_flag',
    'metrics.metrics_backend',
  ],
  'test/e2e/logs.test.ts': ['logger.level'],
  'test/e2e/managed-postgres.test.ts': ['database.pooled'],
  'test/e2e/metrics-gates.test.ts': ['metrics.enabled', 'metrics.bearer_token'],
  'test/e2e/pooler.test.ts': ['database.direct.host', 'database.direct.port'],
  'test/e2e/replicas.test.ts': ['database.replicas', 'database.max_replica_lag_seconds'],
  'test/e2e/server-flags.test.ts': ['env', 'host', 'server.http.port', 'server.http.bind'],
  'test/e2e/tracers-otel.test.ts': ['tracer.type'],
  'test/e2e/watched.ts': ['metrics.max_label_sets'],
  'test/reliability/rolling.ts': ['server.http.drain_delay_seconds'],
  'test/server/api/app.test.ts': ['ingest.max_message_bytes'],
  'test/server/api/idempotency.test.ts': ['limits.idempotency_keys_per_credential'],
  'test/server/auth/process-credentials.test.ts': [
    'server.auth.api_keys',
    'server.auth.basic',
    'server.auth.native',
  ],
  'test/server/auth/record-cache.test.ts': ['server.cache'],
  'test/server/auth/request-limit.test.ts': [
    'api_rate_limit',
    'server.limiter',
    'server.trusted_proxies',
    'server.auth.max_failures',
  ],
  'test/server/billing.test.ts': ['billing.enabled', 'billing.url', 'billing.api_key'],
  'test/server/dashboard.test.ts': [
    'dashboard.enabled',
    'dashboard.stylesheet',
    'portal.frame_ancestors',
  ],
  'test/server/pulladdr.test.ts': ['server.pulladdr', 'agent.pulladdr'],
  'test/server/root-path.test.ts': ['root_path'],
  'test/server/routes/people/api-keys.test.ts': ['limits.api_keys_per_project'],
  'test/server/routes/people/oidc.test.ts': [
    'server.auth.passwords',
    'oidc.issuer',
    'oidc.client_id',
    'oidc.client_secret',
    'oidc.label',
    'oidc.scopes',
    'oidc.require_verified_email',
    'oidc.allowed_domains',
    'oidc.organisation',
    'oidc.role',
    'oidc.allowed_networks',
  ],
  'test/server/routes/people/organisations.test.ts': [
    'limits.organisations_per_user',
    'limits.invitations_per_organisation',
  ],
  'test/server/routes/people/portal-links.test.ts': [
    'limits.portal_links_per_project',
    'limits.endpoints_per_owner',
    'limits.subscriptions_per_owner',
    'portal.requests_per_second',
  ],
  'test/archive/archive.test.ts': [
    'archive.region',
    'archive.endpoint',
    'archive.path_style',
    'archive.access_key_id',
    'archive.secret_access_key',
    'archive.sse',
    'archive.sse_kms_key_id',
  ],
  'test/store/people/audit-log.test.ts': ['retention.audit_days'],
  'test/server/routes/event-types.test.ts': ['limits.event_types_per_project'],
  'test/server/routes/endpoints/client-certificate.test.ts': [
    'limits.client_certificates_per_project',
  ],
  'test/server/routes/subscriptions/subscriptions.test.ts': [
    'limits.endpoints_per_project',
    'limits.subscriptions_per_project',
    'limits.sources_per_project',
  ],
  'test/server/routes/events/scheduled-events.test.ts': ['limits.scheduled_events_per_project'],
  'test/server/routes/sources/sources.test.ts': [
    'server.connection_tests',
    'source.allowed_networks',
    'limits.workers_per_project',
  ],
  'test/server/routes/sources/test-function.test.ts': ['server.function_tests'],
  'test/server/server.test.ts': [
    'database.max_open_connections',
    'server.http.body_timeout_seconds',
    'server.project_concurrency',
  ],
  'test/server/tls.test.ts': [
    'server.http.ssl',
    'server.http.ssl_cert_file',
    'server.http.ssl_key_file',
  ],
  'test/ingest/telemetry/sampler.test.ts': ['query_timeout'],
  'test/store/kv/redis-connection.test.ts': [
    'kv.scheme',
    'kv.host',
    'kv.port',
    'kv.username',
    'kv.password',
    'kv.tls.ca_file',
    'kv.tls.cert_file',
    'kv.tls.key_file',
    'kv.tls.insecure_skip_verify',
    'kv.sentinel.master_name',
    'kv.sentinel.addresses',
    'kv.sentinel.username',
    'kv.sentinel.password',
    'kv.cluster.addresses',
  ],
  'test/store/changing-passwords.test.ts': ['database', 'kv', 'smtp'].flatMap((group) => [
    `${group}.password_file`,
    `${group}.password_command`,
  ]),
  'test/store/postgres/database.test.ts': [
    'database.host',
    'database.port',
    'database.username',
    'database.database',
    'database.options',
    'database.max_builder_connections',
    'database.idle_timeout_seconds',
  ],
};

meta('each setting has a test of what it does: name it here', () => {
  const tested = Object.values(TESTED).flat();
  assert.equal([...tested].sort(), Object.keys(rows).sort());
});

meta('each of these tests gives the setting', () => {
  const present = files();
  const missing = Object.entries(TESTED).flatMap(([file, keys]) => {
    const text = present.includes(file) ? read(file) : '';
    const names = (key: string) => [
      key.split('.').at(-1)!,
      envOf(key, rows[key]!),
      `--${rows[key]!.flag}`,
    ];
    return keys
      .filter((key) => !rows[key] || !names(key).some((name) => text.includes(name)))
      .map((key) => `${key}: ${file}`);
  });
  assert.equal(missing, []);
});

meta.run();
