import type { ExplainedRoute } from '@gateway/agent/inspect';
import { maskUrls } from '@gateway/core/logging';
import type { RoutedPreview } from './preview.js';

/** A preview as JSON. */
export function previewRecord({ kind, name, sampleBytes, refusal, results, logs, durationMs, routes }: RoutedPreview): unknown {
  return {
    outcome: kind,
    function: name,
    sample_bytes: sampleBytes,
    duration_ms: durationMs,
    console: logs,
    refusal,
    results: results.map(({ json, refusal: refused }, at) => ({
      message: JSON.parse(json) as unknown,
      refusal: refused,
      ...(routes ? { route: routes[at] ? routeRecord(routes[at]) : null } : {}),
    })),
  };
}

function routeRecord({ rule, outcome, targets, subscriptions }: ExplainedRoute): unknown {
  return {
    rule,
    outcome,
    endpoints: targets.map(({ endpoint, subscription }) => ({
      uid: endpoint.id,
      name: endpoint.name,
      url: maskUrls(endpoint.url),
      status: endpoint.status,
      subscription_id: subscription?.id ?? null,
    })),
    subscriptions: subscriptions.map(({ subscription, mismatch }) => ({
      uid: subscription.id,
      name: subscription.name,
      matches: !mismatch,
      mismatch,
    })),
  };
}
