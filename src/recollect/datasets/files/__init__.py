"""Files of data sets: found, fetched, checked, unpacked, decoded."""
