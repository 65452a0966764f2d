// Verdicts of promptfoo: reads {pairs: [{assert, answers}], configs: [{config, folder}]} and prints the verdicts.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , folder, input, output] = process.argv;
const module_ = join(folder, 'node_modules/promptfoo/dist/src/index.js');
const { assertions, evaluate } = await import(pathToFileURL(module_).href);
const work = JSON.parse(readFileSync(input, 'utf8'));

// The command marks a case without an output as failed before it tries assertions.
const verdict = async (assertion, answer, ms) => {
  if (answer === null) return 'F';
  try {
    const result = await assertions.runAssertions({
      test: { vars: {}, assert: [assertion] },
      providerResponse: { output: answer },
      ...(ms === undefined ? {} : { latencyMs: ms }),
    });
    return result.pass ? 'T' : 'F';
  } catch {
    return 'E';
  }
};

const pairs = [];
for (const { assert, answers } of work.pairs) {
  const timed = assert.type.endsWith('latency');
  let row = '';
  for (const each of answers) row += await verdict(assert, timed ? 'x' : each, timed ? each : undefined);
  pairs.push(row);
}

const configs = [];
for (const { config, folder: base } of work.configs) {
  process.chdir(base);
  try {
    const quiet = { cache: false, maxConcurrency: 1, showProgressBar: false };
    const found = await evaluate({ ...config, writeLatestResults: false }, quiet);
    const results = found.results ?? (await found.toEvaluateSummary()).results;
    const listed = [...results].sort((a, b) => a.testIdx - b.testIdx || a.promptIdx - b.promptIdx);
    configs.push(listed.map((each) => (each.success ? 'T' : 'F')).join(''));
  } catch (error) {
    configs.push(`error: ${error.message}`);
  }
}
writeFileSync(output, JSON.stringify({ pairs, configs }));
process.exit(0);
