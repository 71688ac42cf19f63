import { hostname } from 'node:os';
import type { TracerContext } from '@gateway/plugin';
import { resources } from '@opentelemetry/sdk-node';

const ENVIRONMENT = 'deployment.environment.name';
/** What it was called until 2024, and what many back ends read still. */
const ENVIRONMENT_BEFORE = 'deployment.environment';

/**
 * What is told of this process: https://opentelemetry.io/docs/specs/semconv/resource/
 * The environment is that of OTEL_RESOURCE_ATTRIBUTES, which is meant for this one thing, before that of the gateway.
 */
export function resourceOf({ serviceName, serviceVersion, environment }: TracerContext): resources.Resource {
  const given = resources.detectResources({ detectors: [resources.envDetector] });
  const named = given.attributes[ENVIRONMENT] ?? given.attributes[ENVIRONMENT_BEFORE] ?? environment;
  return resources
    .defaultResource()
    .merge(given)
    .merge(
      resources.resourceFromAttributes({
        'service.name': serviceName,
        'service.version': serviceVersion,
        [ENVIRONMENT]: named,
        [ENVIRONMENT_BEFORE]: named,
        'host.name': hostname(),
        'process.pid': process.pid,
      }),
    );
}
