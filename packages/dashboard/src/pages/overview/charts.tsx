import { TimeChart } from '../../components/chart/time-chart.js';
import { Panel } from '../../components/layout/panel.js';
import { rate } from '../../format/number.js';
import { lineOf, summaryOf, type Steps } from './activity.js';

export function Charts({ steps }: { readonly steps: Steps }) {
  const events = [
    lineOf(steps, 'Processed', 'accent', (step) => step.events.processed),
    lineOf(steps, 'Failed', 'bad', (step) => step.events.failed),
  ];
  const deliveries = [
    lineOf(steps, 'Delivered', 'ok', (step) => step.deliveries.success),
    lineOf(steps, 'Failed', 'bad', (step) => step.deliveries.failure),
    lineOf(steps, 'Discarded', 'muted', (step) => step.deliveries.discarded),
  ];
  const requests = [
    lineOf(steps, 'Accepted', 'ok', (step) => step.attempts.success),
    lineOf(steps, 'Failed', 'bad', (step) => step.attempts.failure),
  ];
  const charts = [
    ['Events per second', events],
    ['Deliveries that ended per second', deliveries],
    ['Requests to endpoints per second', requests],
  ] as const;
  return (
    <Panel title="Over time">
      <div class="overview-charts">
        {charts.map(([title, lines]) => (
          <TimeChart
            key={title}
            title={title}
            summary={summaryOf(lines)}
            atMs={steps.atMs}
            lines={lines}
            format={rate}
          />
        ))}
      </div>
    </Panel>
  );
}
