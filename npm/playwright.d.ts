import type { PlaywrightTestArgs, PlaywrightTestOptions, PlaywrightWorkerArgs, PlaywrightWorkerOptions, TestType } from '@playwright/test';
import type { Hub, Namespace } from './index';

export { expect } from '@playwright/test';

/**
 * Playwright's test with two more fixtures: `authhub`, a hub for the worker, and `ns`, a namespace for the test. When a
 * test fails, the requests that its namespace received are printed and attached to the report.
 */
export const test: TestType<
  PlaywrightTestArgs & PlaywrightTestOptions & { ns: Namespace },
  PlaywrightWorkerArgs & PlaywrightWorkerOptions & { authhub: Hub }
>;
