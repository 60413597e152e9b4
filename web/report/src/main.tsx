import { render } from 'preact';
import { App } from './app';
import { unpack, type Report } from './data';
import './style.css';
import '../../src/theme/verdict.css';

const root = document.getElementById('app')!;
const packed = document.getElementById('data')?.textContent ?? '';

let report: Report | null = null;
try {
  report = await unpack(packed);
} catch (error) {
  console.error(error); // the page itself says that it cannot be read
}
render(<App report={report} />, root);
