// SPDX-License-Identifier: Apache-2.0
// A reporter for node --test: a line for each test, as tests/case counts them.
export default async function* lines(events) {
  for await (const { type, data } of events) {
    if (type === "test:stderr") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const seconds = (data.details.duration_ms / 1000).toFixed(3);
    const name = data.name.replaceAll(/\s+/g, "-");
    // Node reports tests that the filter leaves out as skipped.
    if (data.skip === "test name does not match pattern") continue;
    if (data.skip !== undefined || data.todo !== undefined) yield `SKIP ${name}: ${data.skip}\n`;
    else if (type === "test:pass") yield `PASS ${name} (${seconds} s)\n`;
    else yield `FAIL ${name}: ${reason(data.details.error)}\n`;
  }
}

function reason(error) {
  const { message, stack } = error?.cause ?? error ?? {};
  return `${message ?? "failed"}\n${stack ?? ""}`;
}
