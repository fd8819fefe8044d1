"""One case a module: what each exercise takes, what it must give, and the mistakes that people make in it."""
