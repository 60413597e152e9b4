export function dateText(seconds: number, language: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
  return format.format(new Date(seconds * 1000));
}

export function FileName({ file }: { file: string }) {
  const slash = file.lastIndexOf('/') + 1;
  return (
    <span>
      <span class="muted">{file.slice(0, slash)}</span>
      <wbr />
      {file.slice(slash)}
    </span>
  );
}
