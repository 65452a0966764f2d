/** @type {Object<string, string>} */
const inChinese = {};
