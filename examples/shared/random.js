// Random numbers and keys that work in Node and in a page of any address; `crypto.randomUUID` is missing in a page that
// came by plain HTTP from another machine. Nothing here is a secret.

/** A whole number from `least` to below `limit`. */
export const between = (least, limit) => least + Math.floor(Math.random() * (limit - least));

/** A key that no other request has: the same request sent again with it is carried out once. */
export const once = () => `${Date.now().toString(36)}-${between(0, 2 ** 48).toString(36)}`;
