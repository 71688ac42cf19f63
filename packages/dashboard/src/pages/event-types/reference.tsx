import type { EventType } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import { Code } from '../../components/data/code.js';
import { Time } from '../../components/data/time.js';
import { Panel } from '../../components/layout/panel.js';
import { isPortal } from '../../router/project-path.js';
import { command } from './command.js';
import { SchemaTable } from './schema-table.js';

export function Reference({ type }: { readonly type: EventType }) {
  const { name, description, json_schema: schema, example, deprecated_at: deprecatedAt } = type;
  return (
    <>
      {deprecatedAt && (
        <p>
          <Badge status="deprecated" tone="warn" /> since <Time at={deprecatedAt} />: its events are
          delivered as before, and receivers should not rely on it any more.
        </p>
      )}
      <p class="event-type-description">
        {description || <span class="muted">It has no description.</span>}
      </p>
      <Panel title="Data">
        {schema === null ? (
          <p class="muted">It has no schema: what its data holds is not known.</p>
        ) : (
          <>
            <SchemaTable schema={schema} />
            <details class="more-fields">
              <summary>JSON Schema</summary>
              <Code label="JSON Schema" text={JSON.stringify(schema)} />
            </details>
          </>
        )}
      </Panel>
      <Panel title="Example">
        {example === null ? (
          <p class="muted">It has no example: test events send a greeting.</p>
        ) : (
          <Code label="Data" text={JSON.stringify(example)} />
        )}
        {!isPortal.value && (
          <>
            <p>
              Send one, with an API key in <code>GATEWAY_KEY</code>:
            </p>
            <Code isRaw label="Command" text={command(name, example)} />
          </>
        )}
      </Panel>
    </>
  );
}
