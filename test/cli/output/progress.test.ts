import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { progressBar, type ProgressStream } from '#cli/output/progress';

const progress = suite('cli/output/progress');

/** A terminal of so many columns, and what was drawn on it. */
function terminal(columns: number, isTTY = true): { stream: ProgressStream; drawn: string[] } {
  const drawn: string[] = [];
  const write = (text: string) => drawn.push(text) > 0;
  return { stream: { isTTY, columns, write }, drawn };
}

const text = (drawn: string | undefined) => drawn?.replaceAll(/\r|\x1b\[2K/g, ''); // eslint-disable-line no-control-regex

progress('a bar shows how much is done and the words, on one line that is drawn over', () => {
  const { stream, drawn } = terminal(80);
  const bar = progressBar({ stream });
  bar.show(0.5, '1,234 event deliveries');
  assert.is(text(drawn[0]), '[###############...............]  50 %  1,234 event deliveries');
  bar.end();
  assert.equal(drawn.slice(1), ['\r\x1b[2K']);
});

progress('on a narrow terminal the bar gives way, and nothing is wider than the terminal', () => {
  for (const [columns, expected] of [
    [40, '[#####....]  50 %  1,234 deliveries'],
    [30, ' 50 %  1,234 deliveries'],
    [12, ' 50 %  1,23'],
  ] as const) {
    const { stream, drawn } = terminal(columns);
    progressBar({ stream }).show(0.5, '1,234 deliveries');
    assert.ok((text(drawn[0])?.length ?? 0) < columns, text(drawn[0]));
    assert.is(text(drawn[0])?.replaceAll(/[#.]+\]/g, '#####....]'), expected);
  }
});

progress('it draws at most ten times a second, whatever it is told', () => {
  const { stream, drawn } = terminal(80);
  const bar = progressBar({ stream });
  for (let k = 0; k < 1000; k++) bar.show(k / 1000, '');
  assert.ok(drawn.length <= 5, `${drawn.length} times`);
});

progress('nothing is drawn where there is no terminal, and none when it is to be silent', () => {
  const pipe = terminal(80, false);
  const silent = terminal(80);
  for (const bar of [progressBar({ stream: pipe.stream }), progressBar({ stream: silent.stream, silent: true })]) {
    bar.show(0.5, 'x');
    bar.end();
  }
  assert.equal([pipe.drawn, silent.drawn], [[], []]);
});

progress.run();
