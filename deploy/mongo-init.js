// Makes a single-node replica set and the service's user; run at every start, it changes nothing
// that is there already but passwords that were changed in .env.
//
// It shares mongo's network, because MongoDB lets only a connection from localhost make the first
// user (https://www.mongodb.com/docs/manual/core/localhost-exception/).

const { MONGO_ROOT_PASSWORD, MONGO_PASSWORD, MONGO_DATABASE, MONGO_HOST } = process.env;
const admin = db.getSiblingDB("admin");

function isRoot() {
  try {
    return admin.auth("root", MONGO_ROOT_PASSWORD).ok === 1;
  } catch (error) {
    return false;
  }
}

if (!isRoot()) {
  try {
    rs.initiate({ _id: "rs0", members: [{ _id: 0, host: MONGO_HOST }] });
  } catch (error) {
    if (error.codeName !== "AlreadyInitialized") {
      print(`mongo has a root user whose password is not the one in .env: ${error.codeName}`);
      quit(1);
    }
  }
  while (!db.hello().isWritablePrimary) {
    sleep(200);
  }
  admin.createUser({ user: "root", pwd: MONGO_ROOT_PASSWORD, roles: ["root"] });
  if (!isRoot()) {
    quit(1);
  }
}

while (!db.hello().isWritablePrimary) {
  sleep(200);
}

// deploy/mongo-users.js says why it is no more than this.
const roles = [{ role: "readWrite", db: MONGO_DATABASE }];
if (admin.getUser("aftercall") === null) {
  admin.createUser({ user: "aftercall", pwd: MONGO_PASSWORD, roles });
} else {
  admin.updateUser("aftercall", { pwd: MONGO_PASSWORD, roles });
}
print("mongo is ready");
