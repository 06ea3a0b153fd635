// The least rights on MongoDB: one user for Aftercall's processes, one for people's own queries.
//
//   MONGO_DATABASE=aftercall MONGO_PASSWORD=... MONGO_READER_PASSWORD=... \\
//     mongosh "mongodb://root@m1,m2,m3/?replicaSet=rs0&tls=true" --file deploy/mongo-users.js
//
// `readWrite` is all that services, workers, nightly runs and commands need: it makes collections
// and indexes too. The reader sees what agents sent (secrets were masked before): give it away like
// the data. Both may be run again, which sets the passwords.

const { MONGO_DATABASE = "aftercall", MONGO_PASSWORD, MONGO_READER_PASSWORD } = process.env;
const admin = db.getSiblingDB("admin");

function put(name, password, role) {
  const user = { pwd: password, roles: [{ role, db: MONGO_DATABASE }] };
  if (admin.getUser(name) === null) {
    admin.createUser({ user: name, ...user });
  } else {
    admin.updateUser(name, user);
  }
}

put("aftercall", MONGO_PASSWORD, "readWrite");
if (MONGO_READER_PASSWORD) {
  put("aftercall_reader", MONGO_READER_PASSWORD, "read");
}
