import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { series } from '#core/metrics/series';
import { read } from './house.js';
import { mistakesIn, seriesIn } from './promql.js';

const dashboard = suite('meta/dashboard');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}

const shipped = JSON.parse(read('deploy/grafana/gateway.json')) as {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string | { readonly query: string };
    }[];
  };
};
const panels = shipped.panels.filter(({ type }) => type !== 'row');

dashboard('every panel has a title of its own and says in words what it shows', () => {
  assert.is(new Set(shipped.panels.map(({ id }) => id)).size, shipped.panels.length);
  assert.is(new Set(panels.map(({ title }) => title)).size, panels.length);
  assert.equal(
    panels.filter(({ description = '' }) => !/\w.*\.$/.test(description)).map(({ title }) => title),
    [],
  );
});

dashboard('it can be imported anywhere: each query goes to the data source that is chosen', () => {
  assert.equal(
    shipped.templating.list.map(({ name, type }) => `${name} ${type}`),
    ['datasource datasource', 'job query', 'project query', 'endpoint query'],
  );
  const places = panels.flatMap(({ datasource, targets = [] }) => [
    datasource?.uid,
    ...targets.map((target) => target.datasource.uid),
  ]);
  assert.equal(
    places.filter((uid) => !/^\$\{datasource\}$/.test(uid ?? '')),
    [],
  );
  assert.ok(panels.every(({ targets = [] }) => targets.length > 0));
});

dashboard(
  'its queries ask for series and labels that the gateway exports, and leave out nothing that the page can choose',
  () => {
    const queries = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => [title, expr] as const),
    );
    const choices = shipped.templating.list.flatMap(({ name, query }) =>
      typeof query === 'string' ? [] : [[name, query.query] as const],
    );
    assert.equal(
      [...queries, ...choices].flatMap(([title, expr]) =>
        mistakesIn(expr).map((mistake) => `${title}: ${mistake}`),
      ),
      [],
    );
    assert.equal(
      queries.filter(([, expr]) => !expr.includes('job=~"$job"')).map(([title]) => title),
      [],
    );
  },
);

dashboard('it shows every series of the gateway', () => {
  const shown = new Set(
    panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => seriesIn(expr).map(({ name }) => name)),
    ),
  );
  assert.equal(
    Object.keys(series).filter((name) => !shown.has(name)),
    [],
  );
});

dashboard('no two panels lie on one another', () => {
  const overlaps = panels.flatMap((one, at) =>
    panels
      .slice(at + 1)
      .filter(({ gridPos: b }) => {
        const a = one.gridPos;
        return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
      })
      .map((other) => `${one.title} and ${other.title}`),
  );
  assert.equal(overlaps, []);
  assert.ok(shipped.panels.every(({ gridPos: { x, w } }) => x + w <= 24));
});

dashboard('the guide lists its rows and panels, and no others', () => {
  const section = /^## The dashboard$([^]*?)^## /m.exec(read('docs/guides/metrics.md'))?.[1] ?? '';
  const rows = [...section.matchAll(/^\| (.*) \| (\*\*.*) \|$/gm)];
  assert.equal(
    rows.flatMap(([, row = '', inside = '']) => [
      row,
      ...[...inside.matchAll(/\*\*(.*?)\*\*/g)].map(([, panel]) => panel),
    ]),
    shipped.panels.map(({ title }) => title),
  );
});

dashboard.run();
