export default { input: '../../openapi.json', output: { path: 'out/hey', importFileExtension: '.js' } };
