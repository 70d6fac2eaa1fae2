listen();
drawAll();
