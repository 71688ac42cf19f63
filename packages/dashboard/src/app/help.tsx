import { signal } from '@preact/signals';
import { Dialog } from '../components/form/dialog.js';
import { shortcuts } from '../keyboard/shortcuts.js';
import { useShortcuts } from '../keyboard/use-shortcuts.js';

export const isHelpShown = signal(false);

/** Lists the available shortcuts; opened with `?`. */
export function Help() {
  useShortcuts([{ keys: '?', label: 'Show this list', run: () => (isHelpShown.value = true) }]);
  if (!isHelpShown.value) return null;
  const newest = new Map([...shortcuts.value].reverse().map((it) => [it.keys, it]));
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (isHelpShown.value = false)}>
      <dl class="help">
        {[...newest.values()].map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close a dialog</dd>
        </div>
      </dl>
    </Dialog>
  );
}
