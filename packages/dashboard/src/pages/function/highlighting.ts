import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--accent)' },
    { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--ok)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
    { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
    { tag: tags.function(tags.definition(tags.variableName)), fontWeight: '600' },
    { tag: tags.invalid, color: 'var(--bad)' },
  ]),
);

export const theme = EditorView.theme({
  '&': {
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
    borderRadius: 'var(--radius-s)',
    maxHeight: '40rem',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': {
    fontFamily: 'var(--mono)',
    fontSize: 'var(--text-s)',
    lineHeight: '1.6',
    overflow: 'auto',
    minHeight: '22rem',
  },
  '.cm-content': { caretColor: 'var(--text)', padding: '0.5rem 0' },
  '.cm-gutters': {
    backgroundColor: 'var(--surface)',
    color: 'var(--muted)',
    borderRight: '1px solid var(--border)',
  },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'var(--accent-soft)',
  },
  '.cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket': {
    backgroundColor: 'var(--bad-soft)',
  },
  '.cm-bad-line': { backgroundColor: 'var(--bad-soft)' },
  '.cm-mistake': {
    padding: '0.1rem 0.5rem 0.3rem',
    color: 'var(--bad)',
    backgroundColor: 'var(--bad-soft)',
    whiteSpace: 'pre-wrap',
  },
});
