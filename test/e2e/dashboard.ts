import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
    readonly fieldConfig?: { readonly defaults: { readonly noValue?: string } };
  }[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly query: string | { readonly query: string };
    }[];
  };
}

export interface PanelQuery {
  readonly panel: string;
  readonly refId: string;
  /** The expression for all jobs, projects and endpoints. */
  readonly query: string;
  /** Shown by the panel while all of its queries are empty. */
  readonly noValue?: string;
}

const { panels, templating } = JSON.parse(
  readFileSync(
    fileURLToPath(new URL('../../deploy/grafana/gateway.json', import.meta.url)),
    'utf8',
  ),
) as Dashboard;

const filled = (expression: string, rateInterval: string) =>
  expression
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll(/\$(job|project|endpoint)\b/g, '.*');

/** The queries of all panels, as Grafana sends them. */
export function panelQueries(rateInterval: string): PanelQuery[] {
  return panels.flatMap(({ title: panel, targets = [], fieldConfig }) => {
    const noValue = fieldConfig?.defaults.noValue;
    return targets.map(({ refId, expr }) => ({
      panel,
      refId,
      query: filled(expr, rateInterval),
      ...(noValue === undefined ? {} : { noValue }),
    }));
  });
}

/** The queries of the variables at the top of the page. */
export function choiceQueries(
  rateInterval: string,
): { readonly name: string; readonly query: string }[] {
  return templating.list.flatMap(({ name, query }) => {
    if (typeof query === 'string') return [];
    const asked = query.query
      .replace(/^query_result\((.*)\)$/, '$1')
      .replace(/^label_values\((.*), (\w+)\)$/, 'count by ($2) ($1)');
    return [{ name: `the choice ${name}`, query: filled(asked, rateInterval) }];
  });
}
