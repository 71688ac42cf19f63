import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { javascriptLanguage } from '@codemirror/lang-javascript';
import { bracketMatching, indentOnInput } from '@codemirror/language';
import { EditorState, Prec } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'preact/hooks';
import { colours, theme } from './highlighting.js';
import { mistakeField, showMistake, type Mistake } from './mistakes.js';

/**
 * A JavaScript editor in a shadow root: its styles are constructed style sheets, which the page's
 * content security policy allows. Tab moves the focus, as everywhere; Ctrl+] indents.
 */
export function CodeEditor({
  label,
  value,
  revision,
  onChange,
  mistake,
  isReadOnly = false,
  onRun,
  onSave,
}: {
  readonly label: string;
  readonly value: string;
  /** A new number loads `value` into the editor; otherwise the typed text remains. */
  readonly revision: number;
  readonly onChange: (value: string) => void;
  readonly mistake: Mistake | undefined;
  readonly isReadOnly?: boolean;
  readonly onRun: () => void;
  readonly onSave: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef({ onChange, onRun, onSave });
  latest.current = { onChange, onRun, onSave };

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const command = (run: 'onRun' | 'onSave') => () => {
      latest.current[run]();
      return true;
    };
    const editor = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          history(),
          bracketMatching(),
          indentOnInput(),
          javascriptLanguage,
          colours,
          theme,
          mistakeField,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorState.readOnly.of(isReadOnly),
          Prec.high(
            keymap.of([
              { key: 'Mod-Enter', run: command('onRun') },
              { key: 'Mod-s', run: command('onSave') },
            ]),
          ),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.domEventHandlers({ beforeinput: replaceSelection }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) latest.current.onChange(state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [revision]);

  useEffect(
    () => view.current?.dispatch({ effects: showMistake.of(mistake) }),
    [mistake?.line, mistake?.sentence],
  );

  return <div ref={host} class="code-editor" />;
}

/**
 * Replaces a selection itself: browsers would preserve its look in style attributes, which the
 * content security policy refuses.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  if (
    event.inputType !== 'insertText' ||
    event.data === null ||
    view.composing ||
    view.state.selection.main.empty
  )
    return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), {
    userEvent: 'input.type',
    scrollIntoView: true,
  });
  return true;
}
